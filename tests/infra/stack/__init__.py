"""The whole stack on one machine, without containers: ``python -m tests.infra.stack``, or ``make stack``.

- ``events``: the demo's events, copies of an expert among them, and what no worker understands
- ``shortened``: the rules with their times shortened, and nothing else changed
- ``alertmanager``: a real Alertmanager
- ``running``: everything that is started, and ended again
- ``checks``: what must be true at rest, and the alerts that three faults must have
- ``progress``: what is said meanwhile
"""
