"""Address: how hosts and servers are written in the configuration.

    network.dns "192.0.2.53, 192.0.2.54:5353" --listed--> texts --split--> address and port
    network.ntp "time.example" or "192.0.2.7:1123" --split--> host and port

A name server is an IPv4 address in numbers, since nobody could be asked for its name. Like the
table of keys this is imported on a host as well.
"""

DNS_PORT = 53
NTP_PORT = 123


def is_number(host):
    """Whether a host is an IPv4 address in numbers, or IPv6."""
    parts = host.split(".")
    if ":" in host:
        return True
    return len(parts) == 4 and all([p.isdigit() and len(p) < 4 and int(p) < 256 for p in parts])


def listed(servers):
    """The name servers in a text, parted by commas or spaces; they may be none."""
    return servers.replace(",", " ").split()


def is_name_server(text):
    """Whether `split` can make a name server of it."""
    return is_time_server(text) and is_number(text.partition(":")[0])


def is_time_server(text):
    """Whether `split` can make a time server of it, that is a host."""
    host, _, port = text.partition(":")
    return host != "" and (not port or port.isdigit() and 0 < int(port) < 65536)


def split(server, usual_port):
    """The host and port of a server."""
    host, _, port = server.partition(":")
    return host, int(port) if port else usual_port
