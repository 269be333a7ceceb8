# Sums are written with explicit fused multiply-adds where they are meant, so the compiler must not add its own.
target_compile_options(sheaf_cpu PRIVATE -ffp-contract=off)
