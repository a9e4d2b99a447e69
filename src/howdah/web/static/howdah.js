// howdah: starts the scripts of a page. The pages also work without JavaScript.

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
