"""What crosses the wire: documents, bodies, signatures, the log. It imports neither the device nor the server."""
