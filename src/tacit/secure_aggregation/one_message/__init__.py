"""One message a client, opened as a sum by a quorum of several decryptors."""
