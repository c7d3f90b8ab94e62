"""Pages to open in a browser: the skeleton, the style sheet and pictures, shared by everything that writes one.

- ``document``: a page that needs no network, light and dark, narrow and wide
- ``status``: the page at ``/`` of a worker; ``status_view``: what it shows
- ``svg``: pictures drawn by matplotlib and coloured by the page's style sheet
"""
