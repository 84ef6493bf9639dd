"""Files that are whole or absent, threads of BLAS, packages imported when first used: no mathematics."""
