#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster::detail {

struct NetworkInput;
struct NetworkOutline;
struct NetworkPlan;

/// A network's configuration, and what follows from it without parameters.
class DescribedNetwork {
 public:
  virtual ~DescribedNetwork() = default;

  /// A table: layer, type, inputs (unless it is the preceding layer), output shape, parameters; without the
  /// last two while an input's shape is unknown. Ends with a newline.
  std::string summary() const;
  /// The layers' names and output shapes, without the batch, in execution order.
  /// @throws InvalidArgument while the shape of an input is unknown.
  std::vector<std::pair<std::string, Shape>> outputShapes() const;
  /// The configuration as JSON.
  virtual std::string toJson() const = 0;

 protected:
  /// As in the configuration; shapes may be open.
  virtual std::vector<NetworkInput> inputs() const = 0;
  /// Lays out the configuration, whose inputs all have shapes. @throws InvalidArgument.
  virtual NetworkPlan layOut() const = 0;
  /// The nodes as far as known while shapes are open, in execution order.
  virtual std::vector<NetworkOutline> outline() const = 0;
  /// The shapes of `inputs`.
  std::vector<Shape> inputShapes() const;
  /// @throws InvalidArgument naming an input whose shape is open.
  void requireInputShapes() const;
  virtual void setInputShapes(std::span<const Shape> shapes) = 0;
};

}  // namespace muster::detail
