"""The board's application around the millpond core: asyncio, sockets, hardware."""
