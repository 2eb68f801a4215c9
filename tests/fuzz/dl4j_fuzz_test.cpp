#include "tests/fuzz/check.h"

MUSTER_FUZZ_CASE("models of Deeplearning4j", dl4j, 400)
