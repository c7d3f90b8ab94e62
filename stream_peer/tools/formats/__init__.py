"""Adapters: data that exists, read as events. One file a format; ``catalogue.py`` names them."""
