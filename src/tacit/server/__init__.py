"""Real devices: they check in when they may, and a server makes rounds of the devices that check in.

The same recipes and the same jobs as a simulation: a `Collector` here waits for devices that pull their tasks over
HTTPS. Its packages are the extra `tacit[deployment]`.
"""

__all__: list[str] = []
