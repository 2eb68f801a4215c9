#pragma once

// Visits the part `compare` of a run file, the defaults of the options of muster compare: the same code reads
// (JsonReader) and describes (SchemaWriter) it.

#include <boost/json/array.hpp>
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/datasets/source/detail/data_fields.h"

namespace muster::detail {

struct RunComparison {
  std::vector<std::string> arms = {}, tune = {};
  std::vector<double> seeds = {};
  std::int64_t testEvery = 0;
  std::string baseline = {};
  double target = 0;
  std::string link = {};
};

/// @throws InvalidArgument naming the field that is out of range.
void checkComparison(const RunComparison& comparison);

template <typename Visitor>
void visitComparison(Visitor& v, RunComparison& c) {
  v.describe("ways to train, as in averaging every=10");
  texts(v, "arms", c.arms);
  v.describe("seeds of the first weights and of the order of the examples", "[1, 1099511627776]");
  if constexpr (std::same_as<Visitor, SchemaWriter>)
    v.put("seeds", {{"type", "array"},
                    {"items", boost::json::object{{"type", "integer"}}},
                    {"uniqueItems", true},
                    {"default", boost::json::array{1, 2, 3}}});
  else
    v.numbers("seeds", c.seeds);
  v.describe("fields that are chosen for each arm by validation data, as in learningRate=0.01,0.1");
  texts(v, "tune", c.tune);
  v.field("testEvery", c.testEvery, "samples between tests; 0: a twentieth of the training", kCountedRange);
  v.field("baseline", c.baseline, "the arm that the others are compared with; empty: the first");
  v.field("target", c.target,
          "accuracy in percent, or R2, whose time is compared; 0: the highest that more than half of the "
          "arms reach with every seed",
          "(, 100)");
  v.field("link", c.link, "estimates times over such links, as in 10Gbit,50us; empty: not");
}

}  // namespace muster::detail
