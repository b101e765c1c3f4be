#pragma once

// What a program that MPI has started needs to use Kumi: #include <kumi/mpi.hpp>, and link kumi::mpi.

#include "kumi/job/mpi/join.hpp"
#include "kumi/kumi.hpp"
