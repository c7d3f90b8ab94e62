"""Methods and simulations that no worker serves."""
