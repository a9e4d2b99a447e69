// howdah: what a page does by itself once it is loaded. It can be read without any of this.

import { live } from "./live.js";
import { keys } from "./keys.js";
import { times } from "./times.js";
import { confirmations } from "./confirm.js";
import { copying } from "./copy.js";
import { select } from "./select.js";

times(document);
keys();
confirmations();
copying();
select();
live((main) => times(main));
