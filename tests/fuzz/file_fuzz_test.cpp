// The fuzzers of files without their engine.
#include "tests/fuzz/check.h"

namespace muster::fuzz {

TEST_CASE("fuzzing: safetensors files") {
  check(targets::safetensors, 2000);
}

TEST_CASE("fuzzing: model files") {
  check(targets::model, 500);
}

TEST_CASE("fuzzing: configurations of networks") {
  check(targets::configuration, 1000);
}

TEST_CASE("fuzzing: IDX files") {
  check(targets::idx, 3000);
}

TEST_CASE("fuzzing: gzip files") {
  check(targets::gzip, 3000);
}

TEST_CASE("fuzzing: CIFAR-10's files") {
  check(targets::cifar, 300);
}

TEST_CASE("fuzzing: tar archives") {
  check(targets::tar, 3000);
}

TEST_CASE("fuzzing: texts") {
  check(targets::text, 3000);
}

TEST_CASE("fuzzing: tables of numbers as CSV") {
  check(targets::csv, 3000);
}

TEST_CASE("fuzzing: PNG and JPEG files") {
  check(targets::picture, 3000);
}

TEST_CASE("fuzzing: files of curves") {
  check(targets::curves, 1000);
}

}  // namespace muster::fuzz
