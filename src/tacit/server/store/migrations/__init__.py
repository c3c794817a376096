"""How the tables of a server's store became what they are: Alembic's steps, one file each in `versions/`.

`Store.open` runs them; a store of an older version is brought up to date only where that is asked for.
"""

__all__: list[str] = []
