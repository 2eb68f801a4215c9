# muster_cuda_architectures(<variable> <capabilities> <known>): the architectures to compile device code for.
# <capabilities> is nvidia-smi's list, a line like 9.0 for each GPU; <known> is the output of `nvcc
# --list-gpu-arch`, a line like compute_90 for each architecture. A GPU that nvcc knows gets machine code; a
# newer one gets PTX of the highest architecture below it, which the driver compiles; one older than all known
# ones gets nothing. If no GPU is left, <variable> is empty. If <capabilities> is empty or no such list, the
# code is for published programs: machine code for A100 and H100, and PTX for newer GPUs.
function(muster_cuda_architectures variable capabilities known)
  set(architectures 80-real 90-real 90-virtual)
  if(capabilities MATCHES "^[0-9]+\\.[0-9]+(\n[0-9]+\\.[0-9]+)*$")
    set(architectures "")
    string(REGEX MATCHALL "[0-9]+" known "${known}")
    string(REPLACE "." "" capabilities "${capabilities}")
    string(REPLACE "\n" ";" capabilities "${capabilities}")
    foreach(capability IN LISTS capabilities)
      set(highest 0)
      foreach(architecture IN LISTS known)
        if(architecture LESS_EQUAL capability AND architecture GREATER highest)
          set(highest ${architecture})
        endif()
      endforeach()
      # A list that nvcc cannot print (before CUDA 11) excludes nothing.
      if(highest EQUAL capability OR known STREQUAL "")
        list(APPEND architectures ${capability}-real)
      elseif(highest GREATER 0)
        list(APPEND architectures ${highest}-virtual)
      endif()
    endforeach()
    list(REMOVE_DUPLICATES architectures)
  endif()
  set(${variable} "${architectures}" PARENT_SCOPE)
endfunction()
