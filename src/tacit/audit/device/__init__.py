"""An adversary looks for text in everything that leaves a device.

`texts` has what owners typed, in pairs; `questions` what an operator can ask; `strategies` how it tries to make text
show. `watched` runs the shipped device on one text by a clock of its own, `operator` answers it and notes what leaves,
and `distinguisher` says from transcripts which of two texts it was. `auditor` runs both texts of a pair, and `job` has
`audit_device`.
"""
