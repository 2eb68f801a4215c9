// The fuzzers of files without their engine.
#include "tests/fuzz/check.h"

MUSTER_FUZZ_CASE("safetensors files", safetensors, 2000)
MUSTER_FUZZ_CASE("model files", model, 500)
MUSTER_FUZZ_CASE("configurations of networks", configuration, 1000)
MUSTER_FUZZ_CASE("IDX files", idx, 3000)
MUSTER_FUZZ_CASE("gzip files", gzip, 3000)
MUSTER_FUZZ_CASE("CIFAR-10's files", cifar, 300)
MUSTER_FUZZ_CASE("tar archives", tar, 3000)
MUSTER_FUZZ_CASE("texts", text, 3000)
MUSTER_FUZZ_CASE("tables of numbers as CSV", csv, 3000)
MUSTER_FUZZ_CASE("PNG and JPEG files", picture, 3000)
MUSTER_FUZZ_CASE("files of curves", curves, 1000)
