#include "examples/support/small_training.h"

#include <iostream>

#include "examples/support/command_line.h"

namespace example {

std::optional<SmallTraining> readSmallTraining(int argc, const char* const* argv,
                                               std::string_view introduction, SmallTraining defaults) {
  SmallTraining o = std::move(defaults);
  boost::program_options::options_description all(kLineLength);
  all.add_options()                                                                                 //
      ("workers", withDefault(o.workers, "N"), "threads, each with a replica")                      //
      ("epochs", withDefault(o.epochs, "N"), "passes over the data")                                //
      ("examples", withDefault(o.examples, "N"), "digits to train with, and as many to test with")  //
      ("seed", withDefault(o.seed, "N"), "of the first weights and of the order of the digits")     //
      ("model", withDefault(o.model, "FILE"), "the trained parameters, in the safetensors format")  //
      ("help", "this text");
  const auto given = parseCommandLine(argc, argv, all);
  if (given.count("help") > 0) {
    std::cout << introduction << "\n" << all;
    return std::nullopt;
  }
  requireRange("workers", o.workers, 1, 1024);
  requireRange<std::int64_t>("epochs", o.epochs, 1, 1'000'000);
  requireRange<std::int64_t>("examples", o.examples, 1, 60'000);
  requireAtLeast<std::int64_t>("seed", o.seed, 0);
  muster::require(!o.model.empty(), "--model needs the name of a file");
  return o;
}

}  // namespace example
