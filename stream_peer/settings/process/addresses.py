"""Addresses as text: those of brokers, as ``bootstrap`` lists them, and that of a worker."""


def broker_addresses(bootstrap: str) -> list[tuple[str, int]]:
    """Hosts and ports of ``bootstrap``; the port is 9092 unless given.

    Raises
    ------
    ValueError
        If there is none, a port is no number, or a protocol stands before one (``PLAINTEXT://``).

    Examples
    --------
    >>> broker_addresses("kafka-1:9093, [::1]:9094,localhost")
    [('kafka-1', 9093), ('::1', 9094), ('localhost', 9092)]
    """
    addresses = []
    for part in filter(None, (part.strip() for part in bootstrap.split(","))):
        scheme, slashes, _ = part.partition("://")
        if slashes:
            msg = f"{part!r} is not host:port: leave {scheme}:// out; security.protocol says how to talk to the brokers"
            raise ValueError(msg)
        host, colon, port = part.rpartition(":")
        if not colon or part.endswith("]"):
            host, port = part, "9092"
        if not port.isdecimal() or not 0 < int(port) < 65_536 or not host.strip("[]"):
            msg = f"{part!r} is not host:port"
            raise ValueError(msg)
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        msg = "names no broker"
        raise ValueError(msg)
    return addresses


def host_and_port(host: str, port: int) -> str:
    """An address as it stands in a URL.

    Examples
    --------
    >>> host_and_port("127.0.0.1", 8080), host_and_port("::1", 80)
    ('127.0.0.1:8080', '[::1]:80')
    """
    return f"{f'[{host}]' if ':' in host else host}:{port}"
