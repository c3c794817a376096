"""What a word is: rules, vocabulary, tokens."""
