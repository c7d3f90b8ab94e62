"""The worker's HTTP interface.

- ``routes``: the table of routes, from which both the router and the OpenAPI document are made
- ``server``: binds, bounds connections, and says who handles which route
- ``feeds``, ``explain``, ``probes``, ``page``: who does, and with what
- ``middlewares``: what every request passes
- ``problems``: parameters and pages, and what is wrong
"""

from stream_peer.serve.http.page import About
from stream_peer.serve.http.probes import EarlyProbes
from stream_peer.serve.http.server import HttpServer, Sources, bind, port_of, url_of

__all__ = ["About", "EarlyProbes", "HttpServer", "Sources", "bind", "port_of", "url_of"]
