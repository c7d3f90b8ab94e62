"""Pages to open in a browser: the skeleton, the style sheet and pictures, shared by everything that writes one.

- ``parts``: a page that needs no network, light and dark, narrow and wide; pictures coloured by its style sheet
- ``status``: the page at ``/`` of a worker
"""
