"""How clients' text is read from each kind of file and place; `data.sources` names them all."""
