#include "examples/support/resumed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "muster/core/base/error.h"

namespace example {
namespace {

std::string valueIn(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "unset" : found->second;
}

}  // namespace

std::string allowedChanges(const std::filesystem::path& file, const Settings& saved, const Settings& now,
                           const std::function<bool(std::string_view name)>& mayDiffer, std::string_view by) {
  std::set<std::string> names;
  for (const auto* settings : {&saved, &now})
    for (const auto& [name, value] : *settings) names.insert(name);
  std::vector<std::string> refused, allowed;
  for (const auto& name : names)
    if (const auto was = valueIn(saved, name), is = valueIn(now, name); was != is)
      (mayDiffer(name) ? allowed : refused).push_back(fmt::format("{} {} (now {})", name, was, is));
  if (!refused.empty())
    throw muster::FileError(
        file, fmt::format("cannot be resumed {}: it was trained with {}", by, fmt::join(refused, ", ")));
  return fmt::format("{}", fmt::join(allowed, ", "));
}

}  // namespace example
