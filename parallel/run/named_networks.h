#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/datasets/source/load_data.h"

namespace muster {

/// A network of the library by its name, as the field `network` of a run file: "resnet18", or {"name":
/// "resnet18", "width": 16}. The data give its input shape and its number of outputs.
///
/// `network`s here are JSON texts.

/// Whether a network is named, and not a configuration in full.
bool isNamedNetwork(std::string_view network);

/// @throws InvalidArgument for an unknown name or option, with the nearest known one, or a value out of
/// range.
void checkNamedNetwork(std::string_view network);

/// A named network with all its options, those that it does not give by their defaults.
std::string withAllOptions(std::string_view network);

/// The configuration of a named network for these data, in full.
/// @throws InvalidArgument if it does not fit the data: convolutions and tables, for example.
std::string configurationFor(std::string_view network, LoadedData& data);

/// The names, as in "mlp".
std::vector<std::string> networkNames();

}  // namespace muster
