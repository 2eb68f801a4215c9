#include "muster/core/data/output_names.h"

#include <fmt/format.h>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/data/data_set_iterator.h"

namespace muster {

std::vector<std::string> outputNames(const InputDescription& description) {
  require(description.classes.empty() || description.targets.empty(),
          "the model's description names both classes and numbers to predict; its outputs are one of them");
  auto names = description.classes;
  for (const auto& target : description.targets) names.push_back(target.name);
  return names;
}

void requireOutputs(const InputDescription& description, std::int64_t outputs) {
  auto names = outputNames(description);
  const auto named = std::ssize(names);
  if (named == 0 || named == outputs || (outputs == 1 && description.classes.size() == 2)) return;
  constexpr std::size_t kMost = 8;
  if (names.size() > kMost) names.resize(kMost), names.emplace_back("...");
  throw InvalidArgument(
      fmt::format("the model has {}, and its description names {}: {}", plural(outputs, "output"),
                  description.targets.empty() ? plural(named, "class", "classes")
                                              : plural(named, "number to predict", "numbers to predict"),
                  csvList(names)));
}

const InputDescription& knownDescription(const InputDescription& model, const DataSetIterator& data) {
  const InputDescription* const described = data.description();
  return model.empty() && described != nullptr ? *described : model;
}

}  // namespace muster
