# Finds every MPI of this system. The target kumi_with_NAME has the options that the compiler wrapper of the MPI prints;
# a program that uses this MPI links the target. KUMI_MPIS: the names. KUMI_MPI: the MPI that `mpicc` belongs to, if
# any.
#
# find_package(MPI) would find only one.
function(kumi_find_mpi name wrapper)
    find_program(KUMI_WRAPPER_${name} ${wrapper})
    if(NOT KUMI_WRAPPER_${name})
        return()
    endif()
    execute_process(COMMAND ${KUMI_WRAPPER_${name}} -show OUTPUT_VARIABLE line ERROR_QUIET RESULT_VARIABLE failed
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
        return() # the wrapper is installed, its MPI is not
    endif()
    get_property(names GLOBAL PROPERTY KUMI_MPIS)
    foreach(other ${names})
        get_property(its_line GLOBAL PROPERTY KUMI_MPI_LINE_${other})
        if(line STREQUAL its_line)
            set_property(GLOBAL PROPERTY KUMI_MPI_DEFAULT ${other})
            return()
        endif()
    endforeach()
    separate_arguments(words UNIX_COMMAND "${line}")
    add_library(kumi_with_${name} INTERFACE)
    foreach(word ${words})
        if(word MATCHES "^-I(.+)")
            target_include_directories(kumi_with_${name} SYSTEM INTERFACE ${CMAKE_MATCH_1})
        elseif(word MATCHES "^-L(.+)")
            target_link_directories(kumi_with_${name} INTERFACE ${CMAKE_MATCH_1})
        elseif(word MATCHES "^-l(.+)")
            target_link_libraries(kumi_with_${name} INTERFACE ${CMAKE_MATCH_1})
        elseif(word MATCHES "^-Wl,-rpath")
            target_link_options(kumi_with_${name} INTERFACE ${word})
        endif()
    endforeach()
    # Kumi does not use the C++ bindings of MPI, which are old.
    target_compile_definitions(kumi_with_${name} INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    set_property(GLOBAL APPEND PROPERTY KUMI_MPIS ${name})
    set_property(GLOBAL PROPERTY KUMI_MPI_LINE_${name} "${line}")
    if(name STREQUAL "mpi")
        set_property(GLOBAL PROPERTY KUMI_MPI_DEFAULT mpi)
    endif()
endfunction()

kumi_find_mpi(openmpi mpicc.openmpi)
kumi_find_mpi(mpich mpicc.mpich)
kumi_find_mpi(mpi mpicc) # mostly one of the two above
get_property(KUMI_MPIS GLOBAL PROPERTY KUMI_MPIS)
get_property(KUMI_MPI GLOBAL PROPERTY KUMI_MPI_DEFAULT)
