"""Address: how hosts and name servers are written in the configuration.

    network.dns "192.0.2.53, 192.0.2.54:5353" --listed--> texts --split--> address and port

A name server is an IPv4 address in numbers, with a port where that is not 53: nobody could be
asked for its name. Like the table of keys this is imported on a host as well.
"""

_DNS_PORT = 53


def is_number(host):
    """Whether a host is an IPv4 address in numbers, or IPv6."""
    parts = host.split(".")
    if ":" in host:
        return True
    return len(parts) == 4 and all([p.isdigit() and len(p) < 4 and int(p) < 256 for p in parts])


def listed(servers):
    """The name servers in a text, parted by commas or spaces; they may be none."""
    return servers.replace(",", " ").split()


def is_server(text):
    """Whether `split` can make something of a name server."""
    host, _, port = text.partition(":")
    return is_number(host) and (not port or port.isdigit() and 0 < int(port) < 65536)


def split(server):
    """The address and port of a name server."""
    address, _, port = server.partition(":")
    return address, int(port) if port else _DNS_PORT
