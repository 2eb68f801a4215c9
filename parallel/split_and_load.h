#pragma once

#include <span>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/device/device.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Splits a tensor by its rows (its first dimension) into one part for each device and puts each part on
/// its device, for training loops of your own (as `split_and_load` of MXNet).
///
/// Each of k devices gets n / k of n rows. If k does not divide n, that is an error, unless `evenSplit`
/// is false: then the first n mod k parts hold one row more than the others, and if n < k only the first n
/// devices get a part.
///
/// A part on the tensor's own device is a view of its rows, without a copy: it is valid while the tensor's
/// memory exists and is not refilled. On another device a part is a copy, complete on return.
/// @param devices  at least one; the same device may be given several times.
/// @return [device], no part empty.
/// @throws InvalidArgument for no devices, no rows, or rows that do not divide, naming the numbers.
std::vector<Tensor> splitAndLoad(const Tensor& tensor, std::span<const Device> devices,
                                 bool evenSplit = true);

/// Splits a batch likewise, its features, labels and masks together. Each part has the batch's stamp, with
/// the `firstExample` of its own rows, so random numbers (dropout) are the same as for the whole batch.
/// @throws InvalidArgument as above, and naming a tensor that has not as many rows as the batch has examples.
std::vector<Batch> splitAndLoad(const Batch& batch, std::span<const Device> devices, bool evenSplit = true);

}  // namespace muster
