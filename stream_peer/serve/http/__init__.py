"""The worker's HTTP interface.

- ``routes``: the table of routes, from which both the router and the OpenAPI document are made
- ``server``: binds, and says who handles which route
- ``feeds``, ``explain``, ``questions``, ``senders``, ``probes``, ``page``: who does; ``answers``: with what
- ``connection``, ``middlewares``, ``token``: what every request passes
- ``queries``, ``etags``, ``problems``: parameters and pages; answers that a client may keep; what is wrong
- ``openapi``: the document
"""

from stream_peer.serve.http.page import About
from stream_peer.serve.http.server import HttpServer, Sources, bind, port_of, url_of

__all__ = ["About", "HttpServer", "Sources", "bind", "port_of", "url_of"]
