// The fuzzers of files without their engine.
#include "tests/fuzz/check.h"

namespace muster::fuzz {

TEST_CASE("safetensors files") {
  check(targets::safetensors, 2000);
}

TEST_CASE("model files") {
  check(targets::model, 500);
}

TEST_CASE("configurations of networks") {
  check(targets::configuration, 1000);
}

TEST_CASE("IDX files") {
  check(targets::idx, 3000);
}

TEST_CASE("gzip files") {
  check(targets::gzip, 3000);
}

TEST_CASE("CIFAR-10's files") {
  check(targets::cifar, 300);
}

TEST_CASE("tar archives") {
  check(targets::tar, 3000);
}

TEST_CASE("texts") {
  check(targets::text, 3000);
}

TEST_CASE("tables of numbers as CSV") {
  check(targets::csv, 3000);
}

TEST_CASE("files of curves") {
  check(targets::curves, 1000);
}

}  // namespace muster::fuzz
