#include "muster/parallel/runtime/activity.h"

#include <fmt/format.h>

#include <string_view>

namespace muster {

void Activity::set(Kind kind, std::int64_t batch) {
  // Set the kind last: a reader reads the kind first, so it never combines a new kind with an old age.
  since_ = now_().time_since_epoch().count();
  batch_ = batch;
  kind_ = kind;
}

std::string Activity::describe() const {
  constexpr std::string_view words[] = {
      "",
      "making or filling its replica",
      "in the iterator",
      "computing",
      "in a listener",
      "merging",
      "waiting for data",
      "waiting for a free batch",
      "waiting for other workers",
      "in a sum over the workers",
  };
  const Kind kind = kind_;
  if (kind == Kind::Idle) return {};
  auto text = std::string(words[static_cast<int>(kind)]);
  if (batch_ >= 0) text += fmt::format(" (batch {})", batch_.load() + 1);
  return text + fmt::format(" for {:.3g} s", std::chrono::duration<double>(elapsed()).count());
}

}  // namespace muster
