"""One file a page: what it shows, as values for its template and for its JSON twin."""
