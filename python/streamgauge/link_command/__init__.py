"""``streamgauge link``: any command behind an emulated path, as root or as an ordinary user."""
