#include "examples/support/data_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "examples/support/command_line.h"

namespace example {

namespace po = boost::program_options;

namespace {

/// As in "mnist, fashion or generated".
std::string namesOf(const DataChoice& choice) {
  return fmt::format("{} or {}", fmt::join(choice.names.first(choice.names.size() - 1), ", "),
                     choice.names.back());
}

}  // namespace

po::options_description describeData(DataChoice& choice) {
  const auto number = [](std::optional<std::int64_t>& target) {
    return po::value<std::int64_t>()->value_name("N")->notifier([&](std::int64_t n) { target = n; });
  };
  const bool hasDefault = !choice.name.empty();
  const auto sets = namesOf(choice) + (hasDefault ? ""
                                                  : ". Without a word: MNIST if it is found or can be "
                                                    "fetched, otherwise digits drawn by this program");
  po::options_description data("Data", kLineLength);
  data.add_options()                                                                                      //
      ("data", hasDefault ? withDefault(choice.name, "NAME") : value(choice.name, "NAME"), sets.c_str())  //
      ("data-dir", po::value<std::string>()->value_name("DIR")->notifier([&](const std::string& directory) {
        choice.directory = directory;
      }),
       "where the data set's files lie. Otherwise looked for in MUSTER_DATA_DIR and in the cache, then "
       "fetched")                                                                                         //
      ("examples", number(choice.examples), "only the first N images to train with, and N to test with")  //
      ("train-examples", number(choice.trainExamples), "only the first N images to train with")           //
      ("test-examples", number(choice.testExamples), "only the first N images to test with");
  return data;
}

void checkData(const DataChoice& choice) {
  muster::require(choice.name.empty() || std::ranges::find(choice.names, choice.name) != choice.names.end(),
                  "--data must be {}, got {}", namesOf(choice), choice.name);
  if (choice.examples) requireAtLeast<std::int64_t>("examples", *choice.examples, 1);
  if (choice.trainExamples) requireAtLeast<std::int64_t>("train-examples", *choice.trainExamples, 1);
  if (choice.testExamples) requireAtLeast<std::int64_t>("test-examples", *choice.testExamples, 1);
  muster::require(choice.directory.empty() || choice.name != "generated",
                  "--data-dir is no use with --data generated, which reads no files");
}

}  // namespace example
