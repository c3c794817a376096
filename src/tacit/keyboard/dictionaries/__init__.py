"""Dictionaries of open keyboards.

`entries`           what a dictionary holds: words, what follows them, and how likely both are
`from_model`        the same, asked of a model
`format_202`        one file, which users import; `patricia_trie` and `bigram_steps` are parts of it
`format_403`        a folder, also with what follows two words; `hash_trie` is a part of it
`combined_list`     text, for Android's makedict
`engine_lines`      any keyboard engine as a program that speaks lines
`reference_engine`  such a program, which reads both binary formats
"""
