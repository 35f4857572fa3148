# A chain of joints. A transform about an axis changes two columns of the pose's rotation and moves
# its end by a link. The columns take turns, so that a joint always turns the second and the third.

const Column = Vec{4}  # with a lane to spare

function prepare(angles, links, goal)
    path = Vector{NTuple{4,Column}}(undef, length(angles))  # the columns, and cosine and sine
    slopes = zero(angles)
    run!() = gradient!(slopes, path, angles, links, goal)
    run!, (slopes,)
end

function gradient!(slopes, path, angles, links, goal)
    a, b, c = vector(1.0, 0.0, 0.0, 0.0), vector(0.0, 1.0, 0.0, 0.0), vector(0.0, 0.0, 1.0, 0.0)
    at = zero(Column)
    i, j, k = 1, 2, 3
    @inbounds for joint in eachindex(angles)
        sine, cosine = sincos(angles[joint])
        path[joint] = (b, c, Column(cosine), Column(sine))
        at = at + links[i, joint] * a + (links[j, joint] * b + links[k, joint] * c)
        a, b, c = cosine * b + sine * c, cosine * c - sine * b, a
        i, j, k = j, k, i
    end
    @inbounds missed = 2.0 * (at - vector(goal[1], goal[2], goal[3], 0.0))
    backward!(slopes, path, links, missed, (i, j, k))
end

function backward!(slopes, path, links, missed, (i, j, k))
    a = b = c = zero(Column)  # cotangents of the columns
    @inbounds for joint in reverse(eachindex(slopes))
        i, j, k = k, i, j
        old_b, old_c, cosine, sine = path[joint]
        by_cosine = sum(a * old_b + b * old_c)
        by_sine = sum(a * old_c - b * old_b)
        slopes[joint] = cosine[1] * by_sine - sine[1] * by_cosine
        a, b, c = c + links[i, joint] * missed,
            cosine * a - sine * b + links[j, joint] * missed,
            sine * a + cosine * b + links[k, joint] * missed
    end
end
