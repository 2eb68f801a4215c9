#pragma once

#include <any>
#include <concepts>
#include <memory>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/fields.h"
#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// Holds the option struct of any strategy. A value.
class AnyStrategy {
 public:
  template <typename T>
  requires(!std::same_as<T, AnyStrategy> && StrategyOptions<T>) AnyStrategy(T options)
      : options_(std::move(options)),
        validate_([](const std::any& any) { std::any_cast<const T&>(any).validate(); }),
        fields_([](std::any& any, Fields& fields) {
          if constexpr (requires(T & t) { t.fields(fields); }) std::any_cast<T&>(any).fields(fields);
        }),
        make_([](const std::any& any) -> std::unique_ptr<Strategy> {
          return std::any_cast<const T&>(any).make();
        }) {}

  /// @throws InvalidArgument naming the option out of range.
  void validate() const { validate_(options_); }
  /// Visits the options, if their struct has `void fields(Fields&)`.
  void fields(Fields& fields) { fields_(options_, fields); }
  /// @throws InvalidArgument as `validate`.
  std::unique_ptr<Strategy> make() const {
    validate();
    auto strategy = make_(options_);
    require(strategy != nullptr, "strategy: make() returned nothing");
    return strategy;
  }
  /// The options, if they are of this type; else null.
  template <typename T>
  const T* as() const {
    return std::any_cast<T>(&options_);
  }

 private:
  std::any options_;
  void (*validate_)(const std::any&);
  void (*fields_)(std::any&, Fields&);
  std::unique_ptr<Strategy> (*make_)(const std::any&);
};

}  // namespace muster
