#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/nn/compile/network_plan.h"

namespace muster::detail {

// A network's inputs from a batch, looked up by name and checked. All errors are InvalidArgument and say what
// the network needs and what the batch has.

/// The first of a batch's features or labels if the network has one input or output, else the one called
/// `name`. @param what  "features" or "labels".
const NamedTensor& namedFor(const std::vector<NamedTensor>& tensors, std::string_view what,
                            std::string_view name, bool only);
const Tensor& tensorFor(const std::vector<NamedTensor>& tensors, std::string_view what, std::string_view name,
                        bool only);

/// The shapes of the inputs, [input]: those that are open as the batch's features have them, in rows or as
/// they are. @throws InvalidArgument naming an open input for which the batch has no example, or an empty
/// one.
std::vector<Shape> shapesFrom(std::span<const NetworkInput> inputs, const Batch& batch);
/// One example of zeros, on the CPU; no features before the network has been laid out.
/// @throws OutOfMemory if there is no room for it.
Batch exampleFor(const NetworkPlan& plan);

/// @throws InvalidArgument if the network has not been laid out.
void requireInitialized(const NetworkPlan& plan);
/// @throws InvalidArgument unless `value` is [N, ...] of the shape of input `input`, with N at least 1,
/// and at least 1 where a size is open.
void requireInput(const NetworkPlan& plan, std::size_t input, const Tensor& value);

/// Information of a batch for a pass, other than its tensors.
StepInfo infoOf(const Batch& batch, std::uint64_t seed, bool training);

/// The features of each input, checked as the masks are. @param features  [input], overwritten.
void findFeatures(const NetworkPlan& plan, const Batch& batch, std::vector<const Tensor*>& features);

/// Adds the sizes that an input leaves open. @param features  the shape of the batch's.
/// @throws InvalidArgument if another input has other sizes.
void addOpenSizes(const NetworkInput& input, const Shape& features, BatchSize& size);
/// The size of a batch of these features, [input], checked before. @throws InvalidArgument as above.
BatchSize sizeOf(const NetworkPlan& plan, std::span<const Tensor* const> features);

/// The labels for the loss of `output`; their shape fits its predictions.
const Tensor& labelsOf(const NetworkPlan& plan, const Batch& batch, const NetworkOutput& output,
                       const Shape& predictions);
/// The mask for the loss of `output`; undefined if the batch has none.
Tensor lossMaskOf(const NetworkPlan& plan, const Batch& batch, const NetworkOutput& output,
                  const Shape& predictions);

}  // namespace muster::detail
