"""Scripts for peers' interpreters, one each; nothing of tacit imports them."""
