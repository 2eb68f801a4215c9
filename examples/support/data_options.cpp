#include <fmt/ranges.h>

#include <algorithm>

#include "examples/support/command_line.h"
#include "examples/support/data_sets.h"

namespace example {

void DataChoice::describe(CommandLine& line) {
  // For example "mnist, fashion or generated".
  const auto known = fmt::format("{} or {}", fmt::join(names.first(names.size() - 1), ", "), names.back());
  const auto unsaid = ". If it is not given: MNIST if it is found or can be fetched, else generated digits";
  line.group("Data");
  line.add("data", name, "NAME", known + (name.empty() ? unsaid : ""),
           [this, known](const char*, const std::string& given) {
             muster::require(std::ranges::find(names, given) != names.end(), "--data must be {}, got {}",
                             known, given);
           });
  line.add("data-dir", directory, "DIR",
           "directory of the data set's files. If it is not given: MUSTER_DATA_DIR, then the cache, then a "
           "download");
  line.add("examples", examples, "N",
           "only N images to train with and N to test with, each class in equal shares", atLeast(1));
  line.add("train-examples", trainExamples, "N", "only N images to train with", atLeast(1));
  line.add("test-examples", testExamples, "N", "only N images to test with", atLeast(1));
}

void DataChoice::check() const {
  muster::require(directory.empty() || (name != "generated" && name != "mixtures"),
                  "--data-dir cannot be combined with --data {}, which reads no files", name);
}

}  // namespace example
