"""The cards of the report: each makes its piece of HTML from a ``FeedPage``, or nothing if there is nothing to show.

- ``parts``: what cards are made of, and what they are given
- ``overview``: the state, the four figures, and how the mix did
- ``trust``: states of trust over time, with reasons
- ``curves``: weights, loss, error rate and certificate over time
- ``mixers``, ``shadows``: what the mix is made of, and what would have come of other settings
- ``calibration``: reliability diagrams and Murphy's terms
- ``dependence``, ``alarms``: who agrees with whom beyond skill; groups that the guard names, and drift
- ``experts``, ``why``: the table of experts, and why the leading ones have their weights
- ``settings``: what differs from the default
"""
