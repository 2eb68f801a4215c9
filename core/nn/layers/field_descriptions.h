#pragma once

#include <string_view>

// Descriptions (`Fields::describe`) of the fields that many layers have.

namespace muster::detail {

inline constexpr std::string_view kNameField =
    "in tables, messages and names of weights; empty: made of the type and the position";
inline constexpr std::string_view kActivationField = "function of the layer's outputs";
inline constexpr std::string_view kInitField = "initial values of the weights";
inline constexpr std::string_view kBiasField = "adds a trained number to each output";
inline constexpr std::string_view kPerStepField =
    "for sequences: computes each step by itself, with the same weights";

}  // namespace muster::detail
