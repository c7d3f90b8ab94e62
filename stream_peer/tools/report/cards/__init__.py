"""The cards of the report: each makes its piece of HTML from a ``FeedPage``, or nothing if there is nothing to show.

- ``parts``: what cards are made of, and what they are given
- ``overview``: the state, the four figures, how the mix did and what it is made of, shadows, settings
- ``trust``: states of trust over time, who agrees with whom beyond skill, groups that the guard names, and drift
- ``curves``: weights, loss, error rate and certificate over time; reliability diagrams and Murphy's terms
- ``experts``: the table of experts, and why the leading ones have their weights
"""
