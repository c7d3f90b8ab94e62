"""``stream-peer gateway``: takes events by HTTP."""

import asyncio

import click

from stream_peer.cli.options import Invocation, bound_address, settings_options
from stream_peer.settings.process import read_producers


@click.command(name="gateway")
@settings_options(
    "http.host",
    "http.port",
    "producers_file",
    "gateway.tokens_file",
    "gateway.cert_file",
    "gateway.key_file",
    "gateway.client_ca_file",
    waits="worker",
)
def gateway_command(invocation: Invocation) -> None:
    """Take events by HTTP until SIGTERM or Ctrl-C, and write them to forecast-events.

    POST /events has one event, or one a line. It is checked, signed as the producer that the bearer token or the client
    certificate names, and answered when every in-sync replica has it. /openapi.json describes all.

    \b
    stream-peer gateway --producers-file producers.yaml --gateway-tokens-file tokens --http-port 8081
    """  # noqa: D301
    from stream_peer.gateway.server import check_gateway, run_gateway
    from stream_peer.serve import logs

    settings = invocation.settings
    producers = check_gateway(settings, read_producers(settings))
    with bound_address(invocation.loaded) as bound:
        logs.configure(settings.log, secrets=settings.secrets())
        asyncio.run(run_gateway(settings, producers, bound))
