"""Messages a second: a bare socket, the full line and stock umqtt.simple, in alternating runs.

All three send the same PUBLISH (QoS 1, 64-byte payload) and wait for its PUBACK before the next.
"""

import asyncio
import json
import socket
import time

from rig import PAYLOAD, TOPIC, Line, address
from umqtt.simple import MQTTClient

from firmware.mqtt_out import Outbound

_ROUNDS = 15
_MESSAGES = 3000
_UMQTT_ROUNDS = 3
_UMQTT_MESSAGES = 15


class Bare:
    """A blocking socket: one write, one read a message, nothing else."""

    def __init__(self):
        host, port = address()
        self._sock = socket.socket()
        self._sock.connect(socket.getaddrinfo(host, port)[0][-1])
        self._sock.setsockopt(6, 1, 1)
        hello = Outbound(64)
        hello.connect(b"bare", 0, True)
        self._sock.write(hello.buffer, 0, hello.end)
        self._sock.read(4)

    def send(self, n):
        sock = self._sock
        out = Outbound(128)
        out.publish(TOPIC.encode(), PAYLOAD, 2, 1)
        packet = out.buffer
        end = out.end
        id_at = end - len(PAYLOAD) - 1
        answer = bytearray(4)
        for i in range(n):
            packet[id_at] = i % 255 + 1
            sock.write(packet, 0, end)
            sock.readinto(answer)


def _stock():
    host, port = address()
    client = MQTTClient("stock", host, port)
    client.connect()
    return client


def _rate(n, start):
    return n * 1000000 / max(1, time.ticks_diff(time.ticks_us(), start))


def _middle(values):
    return sorted(values)[len(values) // 2]


async def main():
    line = Line("full")
    await line.connect()
    bare = Bare()
    stock = _stock()
    rates = {"bare": [], "full": [], "umqtt": []}
    bare.send(500)
    await line.send(500)
    for round in range(_ROUNDS):
        start = time.ticks_us()
        bare.send(_MESSAGES)
        rates["bare"].append(_rate(_MESSAGES, start))
        start = time.ticks_us()
        await line.send(_MESSAGES)
        rates["full"].append(_rate(_MESSAGES, start))
        if round < _UMQTT_ROUNDS:
            start = time.ticks_us()
            for _ in range(_UMQTT_MESSAGES):
                stock.publish(TOPIC, PAYLOAD, qos=1)
            rates["umqtt"].append(_rate(_UMQTT_MESSAGES, start))
    line.close()
    print(json.dumps({name: _middle(rates[name]) for name in rates}))


asyncio.run(main())
