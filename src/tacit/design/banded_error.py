"""The errors of prefix sums under a banded strategy, and how they change: O(n p^2) work, O(n p) memory, all in BLAS.

Prefix sums under C are B = A C^{-1}, A the lower-triangular ones. With D = A^{-1} (1 on the diagonal, -1 below) the
matrix F = C D has one band more than C, and B = F^{-1}. Cut into blocks of m >= p rounds F has diagonal blocks L_i
(lower triangular) and blocks K_i below them (upper triangular), nothing else. Reading B F = F B = I by blocks gives two
recursions without a single subtraction, so nothing cancels:

    Q_i = L_i^{-1} (I + K_{i-1} Q_{i-1} K_{i-1}^T) L_i^{-T}    the diagonal blocks of B B^T, first to last
    S_i = L_i^{-T} (W_i + K_i^T S_{i+1} K_i) L_i^{-1}          those of B^T W B, last to first, W diagonal

The diagonal of Q holds the squared errors of all rounds. For a function of them with derivatives w = diag(W), the
derivative by F is -2 B^T W B B^T, whose entries inside the band are -2 S_i L_i Q_i and +2 S_{i+1} K_i Q_i ... (below).
The plain way, automatic differentiation of a loop over rounds, needs n^2 p work and keeps n p numbers a round.
"""
