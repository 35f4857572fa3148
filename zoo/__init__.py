"""Other people's packages with `pb.bridge` around their loss: does it work, and how fast is it?"""
