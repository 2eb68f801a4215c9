#pragma once

#include <string>
#include <variant>

namespace muster {

/// An option of a training, as {"workers", 2.0} or {"strategy", "averaging"}.
struct HyperParameter {
  std::string name;
  std::variant<double, bool, std::string> value;

  HyperParameter(std::string n, double number) : name(std::move(n)), value(number) {}
  HyperParameter(std::string n, bool truth) : name(std::move(n)), value(truth) {}
  HyperParameter(std::string n, std::string text) : name(std::move(n)), value(std::move(text)) {}
  HyperParameter(std::string n, const char* text) : HyperParameter(std::move(n), std::string(text)) {}
};

}  // namespace muster
