"""Any iterate of gradient descent without a decomposition: from the Krylov space of the gradient at the start.

- ``descent``: the stopping step bracketed, the iterate certified; start reading here.
- ``space``: bases of the Krylov spaces, by Golub-Kahan bidiagonalisation or Lanczos.
- ``quadrature``: Gauss, Gauss-Radau and Gauss-Lobatto rules of the small matrices that are left.
- ``ritz_sums``: gradient norms, losses and coefficients along their eigenvectors.
- ``distant_start``: iterates from starts so far away that the way from there would keep no digits.
"""
